package sessions

import (
	"belfry/pkg/account/record"
)

// ProofBy is a proof by one method, now.
func (s *Sessions) ProofBy(provider, method string, aal int) record.Proof {
	return record.Proof{Provider: provider, Methods: []string{method}, AAL: aal, At: s.DB.Now()}
}

// Proof is how the user of a session has proven who they are, for a session that replaces it.
func (me *Session) Proof() record.Proof {
	return record.Proof{Provider: me.Type, Methods: me.Methods, AAL: me.AAL, At: me.AuthenticatedAt, Limited: me.Limited}
}
