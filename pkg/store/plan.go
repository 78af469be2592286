package store

import (
	"bytes"
	"encoding/json"

	"belfry/pkg/store/query"
)

// Plan says how a page of a list was read.
type Plan struct {
	query.Explanation

	// forEach: evaluated for each object; reads: what it allows alone was read
	Rule     string `json:"rule,omitempty"`
	Read     int    `json:"read"`               // objects for this page; one that several reads found counts once
	Bytes    int    `json:"bytes"`              // of these
	Keys     int    `json:"keys,omitempty"`     // of indexes that were compared for intersections
	Expanded int    `json:"expanded,omitempty"` // objects that were read because those of the page name them
	Returned int    `json:"returned"`
}

// explain returns how a page was read.
func (p *listPage) explain() *Plan {
	l := &p.scan
	e := &Plan{Explanation: l.plan.Explain(), Read: l.reads, Bytes: l.bytes, Returned: len(p.list.Objects)}
	for _, r := range l.ranges {
		e.Keys += r.keys
	}
	if p.expander != nil {
		e.Expanded = p.expander.read.objects
	}
	switch {
	case l.rule.scope == allowsValues:
		e.Rule = "reads"
	case l.rule.perObject():
		e.Rule = "forEach"
	}
	return e
}

func (p *Plan) encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(p) // of texts and numbers
	return bytes.TrimRight(b.Bytes(), "\n")
}
