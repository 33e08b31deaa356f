/** The entry of a store key. */
export interface ValueEntry {
  /** The version of the last change of the entry. Only an entry with a greater stamp replaces it. */
  readonly stamp: number
  /** The version of the value; 0 once it was deleted. */
  readonly version: number
  /** Ids of changes, and until when they are kept: milliseconds since 1970. */
  readonly ids: readonly (readonly [id: string, until: number])[]
  /** JSON text; undefined once it was deleted. The entry then stays for a while, so that no late change revives it. */
  readonly value: string | undefined
}

/** No JSON string contains this text, so its first occurrence is that of the entry itself. */
const VALUE = ',"value":'
/** Each entry begins with this. */
const STAMP = '{"stamp":'

/** A JSON object, for readers in other languages. */
export function encodeEntry({ stamp, version, ids, value }: ValueEntry): string {
  const about = `${STAMP}${stamp},"version":${version},"ids":${JSON.stringify(ids)}}`
  return value === undefined ? about : `${about.slice(0, -1)}${VALUE}${value}}`
}

/** The stamp of an entry that {@link encodeEntry} wrote, without reading the rest. */
export function stampOf(text: string): number {
  return Number(text.slice(STAMP.length, text.indexOf(',')))
}

/** Reads an entry that {@link encodeEntry} wrote. @throws Error for any other text */
export function decodeEntry(text: string): ValueEntry {
  const at = text.indexOf(VALUE)
  const about = JSON.parse(at < 0 ? text : `${text.slice(0, at)}}`) as Omit<ValueEntry, 'value'>
  const { stamp, version, ids } = about
  if (!text.startsWith(STAMP) || !Number.isSafeInteger(stamp) || !Number.isSafeInteger(version))
    throw new TypeError('its stamp or version is missing')
  if (!Array.isArray(ids)) throw new TypeError('its ids are missing')
  return { ...about, value: at < 0 ? undefined : text.slice(at + VALUE.length, -1) }
}
