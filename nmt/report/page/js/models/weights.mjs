// From the bytes of a page to the tensors of a model, all of them as 32 bits.

/** Tensors by name from the bytes of `nmt.report.page.live`: 16 bits, or 8 bits with a scale a row. `about.tensors` has their names and shapes in order.
 *
 * 16 bits: the lower byte of every number, then the higher byte of every number.
 * 8 bits: a signed byte for every entry of the matrices, then numbers of 16 bits as above: the scale of every row of
 * the matrices, and the vectors.
 */
export function unpackWeights(bytes, about, bits) {
  const wanted = about.tensors;
  const entries = ([, shape]) => shape.reduce((product, size) => product * size, 1);
  const matrices = bits === 8 ? wanted.filter(([, shape]) => shape.length === 2) : [];
  const codes = new Int8Array(bytes.buffer, bytes.byteOffset, matrices.reduce((total, one) => total + entries(one), 0));
  const halves = unpackHalves(bytes.subarray(codes.length));
  const tensors = {};
  let [code, half] = [0, 0];
  for (const [name, shape] of wanted) {
    const size = entries([name, shape]);
    if (bits === 8 && shape.length === 2) {
      const [rows, columns] = shape;
      const tensor = new Float32Array(size);
      for (let i = 0; i < size; i++) tensor[i] = codes[code + i] * halves[half + Math.floor(i / columns)];
      tensors[name] = tensor;
      code += size;
      half += rows;
    } else {
      tensors[name] = halves.slice(half, half + size);
      half += size;
    }
  }
  if (half !== halves.length) throw new Error("the weights of the page do not fit their description");
  return tensors;
}

/** Numbers of 16 bits as numbers of 32. */
function unpackHalves(bytes) {
  const size = bytes.length / 2;
  const table = Float32Array.from({ length: 1 << 16 }, (_, code) => ofHalf(code));
  const numbers = new Float32Array(size);
  for (let i = 0; i < size; i++) numbers[i] = table[bytes[i] | (bytes[size + i] << 8)];
  return numbers;
}

/** The finite number that a code of IEEE 754's binary16 means. */
export function ofHalf(code) {
  const exponent = (code >> 10) & 31;
  const fraction = code & 1023;
  const size = exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25);
  return code >> 15 ? -size : size;
}
