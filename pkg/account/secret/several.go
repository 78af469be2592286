package secret

import "slices"

// FirstValid returns the first of some secrets that is valid. how returns what says that, nil if none is; it is not asked about a single one.
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
