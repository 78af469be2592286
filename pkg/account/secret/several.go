package secret

import "slices"

// FirstValid returns the first valid secret, or the first one if none is valid. It calls how for the check, unless
// there is only one secret.
func FirstValid(secrets []string, how func() (is func(string) bool)) string {
	if len(secrets) == 0 {
		return ""
	}
	if len(secrets) > 1 {
		if is := how(); is != nil {
			if i := slices.IndexFunc(secrets, is); i >= 0 {
				return secrets[i]
			}
		}
	}
	return secrets[0]
}
