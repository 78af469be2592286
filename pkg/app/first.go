package app

import (
	"context"
	"net/url"

	"belfry/pkg/api/console"
	"belfry/pkg/app/plan"
)

// FirstAdmin says how the first admin is made: by a link, which works once, or by a command; "" where there are users
// already, and in a process without a console. The link is a secret: whoever has it first is the admin. So it is for
// the eyes of whoever starts belfry, and never for the log. Without printLink none is made.
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
		return "there is none yet; make one with: belfry user create ADDRESS --admin", nil
	}
	token, expires, err := now.Auth.FirstAdmin.Offer(ctx)
	if token == "" || err != nil {
		return "", err
	}
	link := now.Auth.Base().At(console.FirstAdminPath) + "?" + url.Values{"token": {token}}.Encode()
	return link + "  (makes the first admin; works once, until " + expires.Format("15:04 MST") + ")", nil
}
