package config

// Notices are mails about changes of an account.
type Notices struct {
	_ struct{} `key:"enabled" is:"flag" default:"true"`
	// those that are sent
	Kinds map[string]Notice `key:"*" keys:"address deleted deletion device disabled factorAdded factorRemoved keyAdded keyRemoved loginAdded loginRemoved password recoveryCodes"`
}

// Notice is a kind of notices.
type Notice struct {
	_ struct{} `key:"enabled" is:"flag" default:"true"`
	MailText
}

// SetDefaults sets the texts of notices.
func (n *Notices) SetDefaults() {
	n.Kinds = map[string]Notice{}
	for kind, what := range map[string][2]string{
		"device": {"A login from a new device", "Somebody, probably you, has logged in to your account " +
			"{{.Login}} at {{.Link}} from a device that was not seen before"},
		"password": {"Your password was set", "The password of your account {{.Login}} at {{.Link}} was set"},
		"factorAdded": {"A way to prove who you are was added",
			"A second factor or a passkey was added to your account {{.Login}} at {{.Link}}"},
		"factorRemoved": {"A way to prove who you are was removed",
			"A second factor or a passkey was removed from your account {{.Login}} at {{.Link}}"},
		"address": {"The address of your account was changed",
			"An address of your account {{.Login}} at {{.Link}} is now {{.About}}"},
		"recoveryCodes": {"Your recovery codes were replaced",
			"The recovery codes of your account {{.Login}} at {{.Link}} were replaced"},
		"loginAdded": {"A login was added to your account",
			"A login, {{.About}}, was added to your account {{.Login}} at {{.Link}}"},
		"loginRemoved": {"A login was removed from your account",
			"A login, {{.About}}, was removed from your account {{.Login}} at {{.Link}}"},
		"keyAdded": {"An API key was added to your account",
			"An API key, {{.About}}, was added to your account {{.Login}} at {{.Link}}"},
		"keyRemoved": {"An API key of your account was revoked",
			"An API key, {{.About}}, of your account {{.Login}} at {{.Link}} was revoked"},
		"disabled": {"Your account was disabled", "Those who run {{.Link}} have disabled your account {{.Login}}"},
		"deleted":  {"Your account was deleted", "Those who run {{.Link}} have deleted your account {{.Login}}"},
		"deletion": {"Your account is to be deleted",
			"Somebody, probably you, has asked to delete your account {{.Login}} at {{.Link}}"},
	} {
		body := what[1] + ": {{.Time}}{{with .Device}}, {{.}}{{end}}{{if .Address}}, from {{.Address}}{{with " +
			".Place}} ({{.}}){{end}}{{end}}."
		if kind != "disabled" && kind != "deleted" {
			body += " If that was not you, set a new password there and end all sessions."
		}
		n.Kinds[kind] = Notice{MailText: MailText{Subject: what[0], HTML: "<p>" + body + "</p>", Text: body}}
	}
}
