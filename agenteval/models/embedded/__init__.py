"""A real language model on the user's own machine, from one GGUF file.

Two runtimes read the same file, because neither does the other's work:

* `likelihood.LikelihoodModel` (torch): exact log-probabilities of given text. llama.cpp's server
  reports none for a prompt, and forcing a text by a grammar tokenises it differently.
* `generate.LocalServer` (llama.cpp by xllamacpp): chat, JSON schema, grammar, seeds; in-process
  and as an OpenAI-compatible server on loopback.

Usage::

    from agenteval.models import weights
    from agenteval.models.embedded.chat import chat_prefix
    from agenteval.models.embedded.generate import LocalServer
    from agenteval.models.embedded.likelihood import LikelihoodModel

    path = weights.pull()                             # or any Path to a GGUF file
    model = LikelihoodModel.load(path)                # first time ~10 s, later ~2 s
    asked = chat_prefix([{"role": "user", "content": "What is 2 + 3?"}])
    scored = model.token_logprobs(asked, "2 + 3 = 5.")
    scored.logprobs.mean(), scored.starts, scored.ends

    with LocalServer(path) as server:
        reply = server.chat({"messages": [{"role": "user", "content": "Hi"}], "seed": 1})
        print(server.base_url, server.model)          # for any OpenAI client

Nothing here opens a connection to the outside, and nothing heavy is imported before it is used.
"""
