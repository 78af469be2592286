package pages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"belfry/internal/contrast"
	"belfry/internal/mediatype"
	"belfry/internal/smallfile"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// MaxLogo bounds the file of a logo, in bytes: each page of a new visitor loads it.
const MaxLogo = 256 << 10

// logoTypes are the types of logos, with the extensions of their URLs.
var logoTypes = map[string]string{"image/png": ".png", "image/apng": ".png", "image/svg+xml": ".svg",
	"image/webp": ".webp", "image/jpeg": ".jpg"}

// logoPolicy makes a drawing harmless that somebody opens as a page: it loads nothing, and runs no script.
const logoPolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// Logo is a picture that the pages show. A nil Logo means that they show no picture.
type Logo struct {
	path, media string
	content     []byte
}

// LoadLogo reads the file of a logo; "" means none. Its content decides which type it has. It reports errs.Invalid for
// a file that can't be read, is too large, or is no picture that all browsers show.
func LoadLogo(file string) (*Logo, error) {
	if file == "" {
		return nil, nil
	}
	content, err := smallfile.Read(file, MaxLogo)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the logo can't be read")
	}
	var types []string
	for media := range logoTypes {
		types = append(types, media)
	}
	media, ok := mediatype.Judge(content, "", types)
	if !ok {
		return nil, errs.New(errs.Invalid, "the logo is of the type %s: expected a PNG, SVG, WebP or JPEG", media)
	}
	sum := sha256.Sum256(content)
	return &Logo{path: "/auth/logo-" + hex.EncodeToString(sum[:8]) + logoTypes[media], media: media,
		content: content}, nil
}

// send replies with a logo. Its URL changes with its content, so it may be kept for as long as a browser likes.
func (l *Logo) send(x *httpkit.Exchange) error {
	x.SetHeader("Cache-Control", "public, max-age=31536000, immutable")
	x.SetHeader("Content-Security-Policy", logoPolicy)
	x.Send(200, l.media, l.content)
	return nil
}

// Backgrounds of texts in pages.css that links are read on least easily: the ground in the light scheme, and the panel
// in the dark one.
var (
	lightGround = contrast.Color{R: 0xf6, G: 0xf6, B: 0xf4}
	darkPanel   = contrast.Color{R: 0x1c, G: 0x1f, B: 0x24}
	darkText    = contrast.Color{R: 0x0c, G: 0x17, B: 0x26} // on buttons in the dark scheme
)

// Accent returns the rules that give buttons, links and focus a color; "" for none. In the dark scheme it is lighter,
// so that it can be read there. It reports errs.Invalid for a color that can't be read on a light background.
func Accent(color string) ([]byte, error) {
	if color == "" {
		return nil, nil
	}
	light, err := contrast.Parse(color)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the color can't be used")
	}
	if ratio := contrast.Ratio(light, lightGround); ratio < contrast.Readable {
		return nil, errs.New(errs.Invalid,
			"links of the color %s have a contrast of %.2f:1 on the background %s of the pages: expected at least "+
				"%.1f:1, as of %s", light, ratio, lightGround, contrast.Readable,
			light.Toward(contrast.Black, lightGround))
	}
	dark := light.Toward(contrast.White, darkPanel)
	var b bytes.Buffer
	scheme := func(accent, other contrast.Color) string {
		return fmt.Sprintf(":root { --accent: %s; --on-accent: %s; }", accent,
			contrast.Better(accent, contrast.White, other))
	}
	fmt.Fprintf(&b, "\n%s\n@media (prefers-color-scheme: dark) { %s }\n", scheme(light, contrast.Black),
		scheme(dark, darkText))
	return b.Bytes(), nil
}
