package passkeys

import (
	"belfry/pkg/account/secret"
)

// ChallengeSecret returns the secret of the challenge with a name.
func ChallengeSecret(name string, secrets []string) string {
	return secret.FirstValid(secrets, func() func(string) bool {
		return func(secret string) bool { return challengeName(passkeyChallenge(secret)) == name }
	})
}
