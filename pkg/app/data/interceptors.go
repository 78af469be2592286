package data

import (
	"log/slog"

	"belfry/pkg/app/serving"
	"belfry/pkg/intercept"
	"belfry/pkg/store"
)

// Interceptors returns the chain of a store's configured interceptors, or nil.
func Interceptors(g *serving.Generation, name string, log *slog.Logger) store.Interceptor {
	rules := map[string][]intercept.Rule{}
	for op, list := range g.Config.Stores[name].Intercept {
		for _, i := range list {
			rules[op] = append(rules[op], intercept.Rule{Name: i.Name, Timeout: i.Timeout, FailOpen: i.OnError == "accept"})
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return intercept.NewChain(g.Bus.Conn(), rules, log)
}
