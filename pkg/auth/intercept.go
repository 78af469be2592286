package auth

import (
	"context"

	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// screen asks the interceptor about somebody who is about to be registered,
// before there is anything of them: it may refuse, and may complete the user.
func (s *Service) interceptRegistration(ctx context.Context, reg *registration) error {
	if s.interceptor == nil {
		return nil
	}
	asked := reg.fields.Clone()
	delete(asked, fieldPassword)
	patch, err := s.interceptor.Intercept(ctx, store.InterceptRequest{
		Op: "register", Store: s.users.Name, Object: asked.Encode(), Datas: reg.datas.Encode(), Call: store.CallOf(ctx),
	})
	if err != nil || len(patch) == 0 {
		return err
	}
	if reg.fields, err = object.MergePatch(reg.fields, s.users.SettableByInterceptor(patch)); err != nil {
		return err
	}
	return s.users.Check(asService(ctx, ""), reg.fields, object.NewUUID())
}
