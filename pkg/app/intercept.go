package app

import (
	"log/slog"

	"belfry/pkg/intercept"
	"belfry/pkg/store"
)

// interceptors returns the chain of a store's configured interceptors; nil if there are none.
func interceptors(g *generation, name string, log *slog.Logger) store.Interceptor {
	rules := map[string][]intercept.Rule{}
	for op, list := range g.config.Stores[name].Intercept {
		for _, i := range list {
			rules[op] = append(rules[op], intercept.Rule{Name: i.Name, Timeout: i.Timeout, FailOpen: i.OnError == "accept"})
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return intercept.NewChain(g.bus.Conn(), rules, log)
}
