package links

import (
	"context"
	"iter"

	"belfry/pkg/account/record"
)

// IsPasskey reports whether an ident is a passkey with a credential.
func IsPasskey(i record.Ident) bool {
	return i.Type == record.PasskeyType && i.Credential != nil && len(i.Credential.PublicKey) > 0
}

// PasskeysOf iterates over the passkeys of a user. It ends after the first error.
func (s *Flow) PasskeysOf(ctx context.Context, user string) iter.Seq2[record.Ident, error] {
	return func(yield func(record.Ident, error) bool) {
		for ident, err := range s.DB.Idents.Owned(ctx, user) {
			if (err != nil || IsPasskey(ident)) && !yield(ident, err) {
				return
			}
		}
	}
}
