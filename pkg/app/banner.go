package app

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"strings"

	"belfry/pkg/api/console"
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
	// Without the role it only serves probes, for programs that use its address and not its name.
	if a.roles.Has(plan.RoleFront) && a.now().Config.Secure() {
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

// FirstAdmin describes how to create the first admin: by a link, which works once, or by a command. It returns "" if
// there are users, and in a process without a console. The link is a secret: the first person to open it becomes the
// admin. So it is only shown to the person who starts belfry, and is never logged. Without printLink no link is made.
func (a *App) FirstAdmin(ctx context.Context, printLink bool) (string, error) {
	now := a.now()
	if now.Auth == nil || !a.roles.Has(plan.RoleFront) || !now.Config.Console.Enabled {
		return "", nil
	}
	if !printLink {
		missing, err := now.Auth.FirstAdmin.Needed(ctx)
		if !missing || err != nil {
			return "", err
		}
		return "there is no admin yet; create one with: belfry user create ADDRESS --admin", nil
	}
	token, expires, err := now.Auth.FirstAdmin.Offer(ctx)
	if token == "" || err != nil {
		return "", err
	}
	link := now.Auth.Base().At(console.FirstAdminPath) + "?" + url.Values{"token": {token}}.Encode()
	return link + "  (makes the first admin; works once, until " + expires.Format("15:04 MST") + ")", nil
}
