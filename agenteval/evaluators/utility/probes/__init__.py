"""Probes of a judge: does its score follow anything that is not the work it grades?

Place in the prompt, order of the scale, wording of the prompt, text in the work that asks for a
grade, length, use of the scale, and kinship with the systems it grades. They examine the judge; no
criterion gets a verdict from them.
"""
