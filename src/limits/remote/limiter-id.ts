/**
 * The ID of a limiter in an engine. The length comes before the name, so that no other name and key have the same ID.
 * @param key undefined for the limiter itself
 */
export function limiterId(name: string, key: string | undefined): string {
  return `${name.length}:${name}${key === undefined ? '' : `:${key}`}`
}

/** The name and the key of such an ID. */
export function limiterOf(id: string): { readonly name: string; readonly key: string | undefined } {
  const start = id.indexOf(':') + 1
  const end = start + Number(id.slice(0, start - 1))
  return { name: id.slice(start, end), key: end < id.length ? id.slice(end + 1) : undefined }
}
