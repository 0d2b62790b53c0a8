package llmtest

import (
	"bytes"
	"image"
	_ "image/gif" // the formats that every API takes
	_ "image/jpeg"
	"image/png"
	"strings"
)

// Pixel is the smallest picture: a PNG.
var Pixel = func() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic("llmtest: " + err.Error())
	}
	return b.Bytes()
}()

// canShow reports whether the data are a picture of the type that they are said
// to be. The APIs answer that they could not process it, or that its type is not
// supported, for each request that holds one.
func canShow(mimeType string, data []byte) bool {
	if mimeType == "image/webp" { // which the standard library does not read
		return len(data) >= 30 && bytes.HasPrefix(data, []byte("RIFF")) && string(data[8:12]) == "WEBP"
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	return err == nil && c.Width > 0 && c.Height > 0 && mimeType == "image/"+strings.ToLower(format)
}
