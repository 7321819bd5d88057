"""A library's own cuts, read out and given back as `Bins`, train the identical model, whatever the settings.

One table of settings for each library: every documented parameter that touches data or bins, and those that change what
is learned from them. Predictions are equal bit for bit; where they cannot be, the setting is in `OTHER` with the reason.
"""
