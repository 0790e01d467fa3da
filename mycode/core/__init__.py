"""The nouns of the house: plain frozen values and protocols, no I/O, nothing imported from its siblings."""
