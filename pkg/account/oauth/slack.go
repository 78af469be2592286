package oauth

import (
	"net/url"
	"regexp"
	"strings"

	"belfry/config"
	"belfry/pkg/object"
)

// NewSlack makes the provider "Sign in with Slack". Its token endpoint fails with a code_verifier, so the nonce
// in the ID token binds a code to its login.
// https://docs.slack.dev/authentication/sign-in-with-slack/
func NewSlack(c config.Site, by Requests) Provider {
	site := oidcSite{name: "slack", noPKCE: true, complete: slackProfile, id: slackID, idFields: "team_id and sub"}
	c = withDefaults(c, "https://slack.com", "https://slack.com/openid/connect/authorize",
		"https://slack.com/api/openid.connect.token", "https://slack.com/openid/connect/keys")
	return newSite(site, c, []string{"openid", "email", "profile"}, by)
}

// slackClaims is the beginning of claims that are Slack's own.
const slackClaims = "https://slack.com/"

// slackProfile names Slack's own claims as Slack's API does: team_id, not https://slack.com/team_id.
func slackProfile(profile object.Object, _ url.Values) {
	for _, claim := range profile.Names() {
		if name, own := strings.CutPrefix(claim, slackClaims); own {
			profile[name] = profile[claim]
			delete(profile, claim)
		}
	}
}

var slackIDSyntax = regexp.MustCompile(`^[A-Z0-9]{1,100}$`)

// slackID is the id of the workspace and that of the user in it, which is unique only there.
func slackID(profile object.Object) string {
	team, _ := profile.Text("team_id")
	user, _ := profile.Text("sub")
	if !slackIDSyntax.MatchString(team) || !slackIDSyntax.MatchString(user) {
		return ""
	}
	return team + "." + user
}
