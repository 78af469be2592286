package notices

import (
	"slices"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
)

// deviceSecret returns the secret of a device that is known, of those of a client.
func deviceSecret(from sessions.Client, user string, known []record.Device) string {
	secrets := slices.DeleteFunc(append([]string{from.Device}, from.Devices...), func(secret string) bool { return secret == "" })
	return secret.FirstValid(secrets, func() func(string) bool {
		return func(secret string) bool {
			hash := deviceHash(user, secret)
			return slices.ContainsFunc(known, func(d record.Device) bool { return d.Hash == hash })
		}
	})
}
