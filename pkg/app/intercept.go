package app

import (
	"belfry/pkg/intercept"
	"belfry/pkg/store"
)

// interceptor returns the chain of a store's configured interceptors; nil if there are none.
func (a *generation) interceptor(name string) store.Interceptor {
	rules := map[string][]intercept.Rule{}
	for op, list := range a.config.Stores[name].Intercept {
		for _, i := range list {
			rules[op] = append(rules[op], intercept.Rule{Name: i.Name, Timeout: i.Timeout, FailOpen: i.OnError == "accept"})
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return intercept.NewChain(a.bus.Conn(), rules, a.log)
}
