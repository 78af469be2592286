package users

import (
	"cmp"
	"context"
	"strings"

	"belfry/pkg/account/record"
)

// maxNamed is how many idents of a user are read to find an address.
const maxNamed = 10

// Address returns the e-mail address with which a user logs in, or else the uuid of another ident; "" for a user without
// idents. It shows people who somebody is: users choose their other fields themselves.
func (s *Users) Address(ctx context.Context, user string) (string, error) {
	other, read := "", 0
	for ident, err := range s.DB.Idents.Owned(record.AsService(ctx, ""), user) {
		if err != nil {
			return "", err
		}
		if address, isEmail := strings.CutSuffix(ident.UUID, "_email"); isEmail {
			return address, nil
		}
		other = cmp.Or(other, ident.UUID)
		if read++; read == maxNamed {
			break
		}
	}
	return other, nil
}
