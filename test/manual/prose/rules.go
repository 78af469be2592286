package prose

import "regexp"

// rule is a phrase and what to write instead.
type rule struct {
	pattern *regexp.Regexp
	unless  *regexp.Regexp // the sentence matches it
	instead string
}

func phrase(pattern, instead string) rule {
	return rule{pattern: regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`), instead: instead}
}

// rules are the phrases of docs/style.md that a pattern finds. Questions may begin with "what" and "who".
var rules = []rule{
	phrase(`(?:is|are|was|were|be|has|have) none`, `say what there is, or "no …"`),
	phrase(`(?:has|have|had) not (?:a|an|the|its|their|his|her|any|got|it|them|this|that|what|to|one|enough|all)`,
		`"lacks", "does not have", "no longer has"`),
	phrase(`of who(?:ever|m)?|by whoever|to whoever|for whoever|whoever|whomever`,
		`name the person: "the user", "each subscriber"`),
	phrase(`whatever|whichever`, `name the thing, or "any …"`),
	phrase(`that which|those which|what is (?:a|an|the) \w+['’]s`, `use a noun: "a user's data"`),
	phrase(`tells|told|hears|heard|overhears?|overheard`, `"reports", "notifies", "receives", "shows"`),
	phrase(`(?:goes|go|went|gone) on(?: with| as)?`, `"continues"`),
	phrase(`goes with it|goes with them|comes to be|comes by`, `"is deleted with", "is created", "runs"`),
	phrase(`under way|underway|in hand`, `"in progress", "in flight", "pending"`),
	phrase(`sign of life|signs of life`, `"heartbeat"`),
	phrase(`stands? still|is away|are away|is back|are back`, `"stalls", "is unavailable", "recovers"`),
	phrase(`give way|gives way|gave way|gives up its place`, `"yields to", "is overridden by"`),
	phrase(`anew`, `"again", or a verb with "re-"`),
	phrase(`all the same`, `"still", "anyway"`),
	phrase(`not any more|not any longer|any more|no more \w+ than`, `"no longer"`),
	phrase(`there is nothing that|there is nobody who|it is nothing that`, `"nothing …", "nobody …"`),
	phrase(`not un\w+`, `leave both negations out`),
	phrase(`looks? again|second look|looks? anew`, `"checks", "re-reads"`),
	phrase(`behaviours?|colours?|favours?|centre|licence|whilst|amongst|grey|judgement|catalogues?|(?:cancel|label|travel)l(?:ed|ing)|(?:organ|author|recogn|normal|serial|initial|optim|summar|synchron)is(?:e|es|ed|ing|ation)`,
		`American spelling`),
	{pattern: regexp.MustCompile(`^(?:What|Who|Whose|Whom) `), unless: regexp.MustCompile(`\?["”)]*\s*$`),
		instead: `begin with a noun: the actor, or the thing`},
}
