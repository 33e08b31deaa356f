/**
 * The id under which an engine keeps a limiter. The length comes before the name, so that no other name with another
 * key gives the same id.
 * @param key undefined for the limiter as a whole
 */
export function limiterId(name: string, key: string | undefined): string {
  return `${name.length}:${name}${key === undefined ? '' : `:${key}`}`
}

/** The name and the key from such an id. */
export function limiterOf(id: string): { readonly name: string; readonly key: string | undefined } {
  const start = id.indexOf(':') + 1
  const end = start + Number(id.slice(0, start - 1))
  return { name: id.slice(start, end), key: end < id.length ? id.slice(end + 1) : undefined }
}
