"""python -m agenteval"""

from agenteval.cli.main import main

if __name__ == "__main__":
    main()
