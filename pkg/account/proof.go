package account

import "belfry/pkg/account/record"

// proofBy is a proof by one method, now.
func (s *Service) proofBy(provider, method string, aal int) record.Proof {
	return record.Proof{Provider: provider, Methods: []string{method}, AAL: aal, At: s.now()}
}

// proof is how the user of a session has proven who they are, for a session that replaces it.
func (me *Session) proof() record.Proof {
	return record.Proof{Provider: me.Type, Methods: me.Methods, AAL: me.AAL, At: me.AuthenticatedAt, Limited: me.limited}
}
