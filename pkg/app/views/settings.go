package views

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"belfry/config"
	"belfry/config/value"
	"belfry/pkg/account/method/providers"
	"belfry/pkg/api/console"
	"belfry/pkg/app/serving"
)

// fileService is a binary service of defaults.
const fileService = "Files"

// defaults is a configuration without limits of its own. That it can't be read would be an error of the program.
var defaults = sync.OnceValue(func() *config.Config {
	c, err := config.Parse("belfry.yaml", []byte("binaries: {"+fileService+": {}}"),
		func(string) (string, bool) { return "", false })
	if err != nil {
		panic("views: " + err.Error())
	}
	return c
})

// settings returns the data of the view Settings.
func settings(g *serving.Generation) *console.Settings {
	c := g.Config
	s := &console.Settings{File: c.File(), Callback: g.Auth.Base().At(providers.CallbackPath),
		Providers: providersOf(&c.Authentication), Limits: limitsOf(c, defaults()), Templates: c.Pages.Folder,
		Languages: c.Pages.Languages}
	for _, b := range []console.Setting{{Key: "branding.name", Value: c.Branding.Name},
		{Key: "branding.logo", Value: c.Branding.Logo}, {Key: "branding.color", Value: c.Branding.Color}} {
		if b.Value != "" {
			s.Branding = append(s.Branding, b)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Pages.Paths)) {
		s.Pages = append(s.Pages, console.SettingsPage{Name: name, Path: c.Pages.Paths[name]})
	}
	for _, r := range []struct{ key, value string }{
		{"successRedirect", c.Authentication.SuccessRedirect}, {"failureRedirect", c.Authentication.FailureRedirect},
		{"registerRedirect", c.Authentication.RegisterRedirect},
		{"recoveryRedirect", c.Authentication.RecoveryRedirect},
		{"secondFactorRedirect", c.Authentication.SecondFactorRedirect},
		{"mailLoginRedirect", c.Authentication.MailLoginRedirect},
		{"addressRedirect", c.Authentication.AddressRedirect}, {"accountRedirect", c.Authentication.AccountRedirect},
	} {
		s.Redirects = append(s.Redirects, console.Setting{Key: "authentication." + r.key, Value: r.value})
	}
	return s
}

// providersOf returns the providers that the configuration has, by name.
func providersOf(a *config.Authentication) (all []console.SettingsProvider) {
	enabled := a.Providers()
	add := func(name, kind string) {
		all = append(all, console.SettingsProvider{Name: name, Kind: kind, Enabled: slices.Contains(enabled, name),
			Returns: name != "email"})
	}
	if a.Email != nil {
		kind := "e-mail and password"
		if a.Email.Login.Code || a.Email.Login.Link {
			kind += ", or a mail"
		}
		add("email", kind)
	}
	for name := range a.OAuth2 {
		add(name, "OAuth 2")
	}
	for name, p := range a.OIDC {
		add(name, "OpenID Connect, "+p.Issuer)
	}
	for _, name := range []string{"apple", "microsoft", "slack"} {
		if a.Site(name) != nil {
			add(name, "OpenID Connect")
		}
	}
	if a.Twitter != nil {
		add("twitter", "OAuth 1")
	}
	slices.SortFunc(all, func(a, b console.SettingsProvider) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// limitsOf returns the limits that are configured, with their defaults.
func limitsOf(c, standard *config.Config) []console.SettingsLimits {
	rates := func(of string, now, usual config.Rates) (all []console.Setting) {
		return []console.Setting{
			number(of+".reads", now.Reads, usual.Reads), number(of+".lists", now.Lists, usual.Lists),
			number(of+".writes", now.Writes, usual.Writes),
			size(of+".listBytes", int64(now.ListBytes), int64(usual.ListBytes)),
			size(of+".uploadBytes", int64(now.UploadBytes), int64(usual.UploadBytes)),
		}
	}
	l, usual, logins := c.Limits, standard.Limits, c.Authentication.Limits
	all := []console.SettingsLimits{
		{Title: "Per second, for each network address", All: rates("limits.address", l.Address, usual.Address)},
		{Title: "Per second, for each user", All: rates("limits.user", l.User, usual.User)},
		{Title: "Per second, for each client on the bus", All: []console.Setting{
			number("limits.bus.requests", l.Bus.Requests, usual.Bus.Requests),
			size("limits.bus.bytes", int64(l.Bus.Bytes), int64(usual.Bus.Bytes)),
		}},
		{Title: "Logins", All: []console.Setting{
			number("authentication.limits.address", logins.Address, standard.Authentication.Limits.Address),
			number("authentication.limits.account", logins.Account, standard.Authentication.Limits.Account),
		}},
		{Title: "Sizes", All: []console.Setting{
			size("maxObjectSize", c.MaxObjectSize, standard.MaxObjectSize),
			size("limits.idempotency", l.Idempotency, usual.Idempotency),
			size("events.buffer", c.Events.Buffer, standard.Events.Buffer),
		}},
		{Title: "Connections to /events", All: []console.Setting{
			number("events.clients", c.Events.Clients, standard.Events.Clients),
			number("events.address", c.Events.Address, standard.Events.Address),
		}},
	}
	var files []console.Setting
	for _, name := range slices.Sorted(maps.Keys(c.Binaries)) {
		files = append(files, size("binaries."+name+".maxSize", c.Binaries[name].MaxSize,
			standard.Binaries[fileService].MaxSize))
	}
	if len(files) > 0 {
		all = append(all, console.SettingsLimits{Title: "A file", All: files})
	}
	return all
}

func number(key string, now, usual int) console.Setting { return limit(key, now, usual, strconv.Itoa) }

func size(key string, now, usual int64) console.Setting {
	return limit(key, now, usual, value.ShowSize)
}

func limit[N int | int64](key string, now, usual N, show func(N) string) console.Setting {
	text := func(n N) string {
		if n == 0 {
			return "no limit"
		}
		return show(n)
	}
	return console.Setting{Key: key, Value: text(now), Default: text(usual)}
}
