package app

import (
	"context"
	"net/url"

	"belfry/pkg/api/console"
	"belfry/pkg/app/plan"
)

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
