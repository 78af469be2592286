package users

import (
	"context"

	"belfry/pkg/account/record"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// New is a user about to be created.
type New struct {
	Identity
	Fields object.Object // of the user, as they will be stored
	Datas  object.Object // of the event Register
}

// InterceptRegistration calls the interceptor with a user before any record of
// them is written. It may refuse the user and may add fields.
func (s *Users) InterceptRegistration(ctx context.Context, reg *New) error {
	if s.Interceptor == nil {
		return nil
	}
	asked := reg.Fields.Clone()
	delete(asked, record.FieldPassword)
	patch, err := s.Interceptor.Intercept(ctx, store.InterceptRequest{
		Op: "register", Store: s.DB.Users.Name(), Object: asked.Encode(), Datas: reg.Datas.Encode(), Call: store.CallOf(ctx),
	})
	if err != nil || len(patch) == 0 {
		return err
	}
	if reg.Fields, err = object.MergePatch(reg.Fields, s.DB.Users.SettableByInterceptor(patch)); err != nil {
		return err
	}
	return s.DB.Users.Check(record.AsService(ctx, ""), reg.Fields, object.NewUUID())
}
