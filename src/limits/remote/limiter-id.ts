/**
 * The id under which an engine keeps a limiter. The length comes before the name, so that no other name with another
 * key gives the same id.
 * @param key undefined for the limiter as a whole
 */
export function limiterId(name: string, key: string | undefined): string {
  return `${name.length}:${name}${key === undefined ? '' : `:${key}`}`
}
