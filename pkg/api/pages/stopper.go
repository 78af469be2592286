package pages

import (
	"errors"
	"html/template"
	"sync/atomic"
	syntax "text/template/parse"
)

// stopper ends executions of templates, which have no context: every template, and every iteration of a range, calls
// it.
type stopper struct{ stopped atomic.Bool }

// asking is the name of the function that calls the stopper.
const asking = "belfry_goes_on"

var errStopped = errors.New("it was stopped")

func (s *stopper) ask() (bool, error) {
	if s.stopped.Load() {
		return false, errStopped
	}
	return true, nil
}

// functions are the functions that templates need before they are parsed.
func (s *stopper) functions() template.FuncMap { return template.FuncMap{asking: s.ask} }

// watch makes parsed templates call the stopper.
func (s *stopper) watch(t *template.Template) {
	question := template.Must(template.New("").Funcs(s.functions()).Parse("{{if " + asking + "}}{{end}}")).
		Tree.Root.Nodes[0]
	for _, one := range t.Templates() {
		if one.Tree != nil {
			watchRanges(one.Tree.Root, question)
			prepend(one.Tree.Root, question)
		}
	}
}

func watchRanges(list *syntax.ListNode, question syntax.Node) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *syntax.IfNode:
			watchRanges(n.List, question)
			watchRanges(n.ElseList, question)
		case *syntax.WithNode:
			watchRanges(n.List, question)
			watchRanges(n.ElseList, question)
		case *syntax.RangeNode:
			watchRanges(n.List, question)
			watchRanges(n.ElseList, question)
			prepend(n.List, question)
		}
	}
}

func prepend(list *syntax.ListNode, n syntax.Node) {
	list.Nodes = append([]syntax.Node{n.Copy()}, list.Nodes...)
}
