// Package stopper ends executions of templates that people write and a process executes while it serves. A template can
// run for longer than anybody waits without writing anything, and its execution has no context.
package stopper

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"text/template"
	"text/template/parse"
	"time"
)

// Stopper ends executions of the templates that it watches: every template, and every iteration of a range, calls it.
type Stopper struct{ stopped atomic.Bool }

// asking is the name of the function that calls the stopper.
const asking = "belfry_goes_on"

// ErrStopped is in the error of an execution that was stopped.
var ErrStopped = errors.New("it was stopped")

func (s *Stopper) ask() (bool, error) {
	if s.stopped.Load() {
		return false, ErrStopped
	}
	return true, nil
}

// Functions are the functions that templates need before they are parsed.
func (s *Stopper) Functions() map[string]any { return map[string]any{asking: s.ask} }

// question returns the node of a template that calls the stopper.
var question = sync.OnceValue(func() parse.Node {
	var other Stopper // the templates that get the node have one of their own
	return template.Must(template.New("").Funcs(other.Functions()).Parse("{{if " + asking + "}}{{end}}")).Root.Nodes[0]
})

// Watch makes parsed templates call the stopper.
func (s *Stopper) Watch(trees ...*parse.Tree) {
	question := question()
	for _, tree := range trees {
		if tree != nil {
			watchRanges(tree.Root, question)
			prepend(tree.Root, question)
		}
	}
}

// Try executes templates once. It stops them if they take longer than most, and from then on.
func (s *Stopper) Try(most time.Duration, execute func() error) error {
	done := make(chan error, 1)
	go func() { done <- execute() }()
	select {
	case err := <-done:
		return err
	case <-time.After(most):
		s.stopped.Store(true)
		return fmt.Errorf("it takes longer than %s: does a range in it end?", most)
	}
}

func watchRanges(list *parse.ListNode, question parse.Node) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.IfNode:
			watchRanges(n.List, question)
			watchRanges(n.ElseList, question)
		case *parse.WithNode:
			watchRanges(n.List, question)
			watchRanges(n.ElseList, question)
		case *parse.RangeNode:
			watchRanges(n.List, question)
			watchRanges(n.ElseList, question)
			prepend(n.List, question)
		}
	}
}

func prepend(list *parse.ListNode, n parse.Node) {
	list.Nodes = append([]parse.Node{n.Copy()}, list.Nodes...)
}
