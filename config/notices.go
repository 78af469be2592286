package config

import "belfry/pkg/texts"

// Notices are mails about changes of an account.
type Notices struct {
	_ struct{} `key:"enabled" is:"flag" default:"true"`
	// those that are sent
	Kinds map[string]Notice `key:"*" keys:"address deleted deletion device disabled factorAdded factorRemoved impersonated keyAdded keyRemoved loginAdded loginRemoved password recoveryCodes"`
}

// Notice is a kind of notices.
type Notice struct {
	_ struct{} `key:"enabled" is:"flag" default:"true"`
	MailText
}

// SetDefaults sets the texts of notices.
func (n *Notices) SetDefaults() {
	n.Kinds = map[string]Notice{}
	for _, kind := range noticeKinds {
		n.Kinds[kind] = Notice{MailText: noticeIn(texts.English(), kind)}
	}
}

var noticeKinds = []string{"address", "deleted", "deletion", "device", "disabled", "factorAdded", "factorRemoved",
	"impersonated", "keyAdded", "keyRemoved", "loginAdded", "loginRemoved", "password", "recoveryCodes"}
