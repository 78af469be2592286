package config

import "testing"

func TestPagesAndStaticFilesAreChecked(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"no folder", "static: {}\n", []string{"1:1: static.folder: is missing; expected the folder of the front end"}},
		{"a missing folder", "static: {folder: nope, spa: true}\n", []string{
			`1:10: static.folder: expected a folder that exists and can be read (no such file or directory), not "nope"`}},
		{"a file", "static: {folder: testdata/full.yaml}\n", []string{
			`1:10: static.folder: expected a folder that exists and can be read (not a directory), not "testdata/full.yaml"`}},
		{"nothing to navigate to", "static: {folder: testdata, spa: true}\n", []string{
			"1:28: static.spa: the folder has no index.html, which replies to every navigation; build the front end " +
				"first, or set another folder"}},
		{"folders outside", "static: {folder: testdata, immutable: [../x, /y, ., '']}\n", []string{
			`1:40: static.immutable[0]: expected the path of a folder in static.folder, such as assets, not "../x"`,
			`1:46: static.immutable[1]: expected the path of a folder in static.folder, such as assets, not "/y"`,
			`1:50: static.immutable[2]: expected the path of a folder in static.folder, such as assets, not "."`,
			`1:53: static.immutable[3]: expected the path of a folder in static.folder, such as assets, not ""`}},
		{"no templates", "pages: {folder: nope, off: true}\n", []string{
			`1:9: pages.folder: expected a folder that exists and can be read (no such file or directory), not "nope"`,
			"1:23: pages.off: unknown key; expected one of enabled, folder, languages"}},
	})
}

// What a deployment of before has at the paths of pages stays there.
func TestPagesGiveWay(t *testing.T) {
	const email = "authentication: {providers: {email: {}}}\n"
	all := map[string]string{"start": "/", "login": "/login", "register": "/register", "recovery": "/recovery",
		"address": "/login/address", "failed": "/login-failed", "second-factor": "/second-factor",
		"account": "/account"}
	without := func(names ...string) map[string]string {
		left := map[string]string{}
		for name, path := range all {
			left[name] = path
		}
		for _, name := range names {
			delete(left, name)
		}
		return left
	}
	with := func(name, path string) map[string]string {
		more := without()
		more[name] = path
		return more
	}
	for text, want := range map[string]map[string]string{
		"":    {"start": "/"},
		email: all,
		"authentication: {providers: {email: {login: {code: " +
			"true}}}}\n": with("mail", "/login/mail"),
		"authentication: {mailLoginRedirect: /enter, providers: {email: {login: {link: " +
			"true}}}}\n": all,
		"authentication: {providers: {github: {clientID: a, " +
			"clientSecret: b}}}\n": without("register", "recovery", "address"),
		"authentication: {registerRedirect: /join, recoveryRedirect: /recovery, failureRedirect: /x, providers: " +
			"{email: {}}}": without("register", "recovery", "failed"),
		"authentication: {successRedirect: /in, providers: {email: {}}}":                all,
		"authentication: {accountRedirect: /me, providers: {email: {}}}":                without("account"),
		email + "stores: {A: {expose: {url: /register}}, B: {expose: {url: /login/x}}}": without("register", "login"),
		email + "binaries: {b: {expose: {url: /recovery}}}":                             without("recovery"),
		email + "pages: {enabled: false}":                                               {},
		email + "static: {folder: testdata/front}":                                      without("start"),
		email + "static: {folder: testdata/front, spa: true}":                           {},
		email + "static: {folder: testdata/front, spa: true}\npages: {enabled: true}":   without("start"),
	} {
		equal(t, text, mustParse(t, text).Pages.Paths, want)
	}
}
