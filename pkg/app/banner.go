package app

import (
	"cmp"
	"log/slog"
	"strings"

	"belfry/pkg/app/plan"
)

// Banner is a text for people with the addresses, the data folder, and how to create the first admin; "" if an admin
// exists.
func (a *App) Banner(firstAdmin string) string {
	var b strings.Builder
	b.WriteString("belfry is ready\n")
	for _, f := range a.facts(firstAdmin) {
		b.WriteString("  " + f.name + strings.Repeat(" ", 8-len(f.name)) + f.value + "\n")
	}
	return b.String()
}

// Served has the facts of Banner as attributes of a log record.
func (a *App) Served(firstAdmin string) []any {
	var attributes []any
	for _, f := range a.facts(firstAdmin) {
		attributes = append(attributes, slog.String(strings.ToLower(cmp.Or(f.name, "redirect")), f.value))
	}
	return attributes
}

type fact struct{ name, value string }

func (a *App) facts(firstAdmin string) []fact {
	scheme := "http://"
	if a.roles.Has(plan.RoleFront) && a.now().Config.Secure() { // without the role it only serves probes, for programs that use its address and not its name
		scheme = "https://"
	}
	all := []fact{{"HTTP", scheme + a.HTTPAddress()}}
	if a.wiring.tls.Address != "" {
		all = append(all, fact{"", "http://" + a.wiring.tls.Address + " redirects to it"})
	}
	if a.now().MetricsAddress != "" {
		all = append(all, fact{"metrics", "http://" + a.now().MetricsAddress + "/metrics"})
	}
	all = append(all, fact{"bus", cmp.Or(a.now().Bus.ClientURL(), "inside this process only (bus.listen is empty)")})
	if len(a.roles) > 0 {
		all = append(all, fact{"roles", strings.Join(a.roles, ", ")})
	}
	if firstAdmin != "" {
		all = append(all, fact{"admin", firstAdmin})
	}
	return append(all, fact{"data", a.now().Config.Data})
}
