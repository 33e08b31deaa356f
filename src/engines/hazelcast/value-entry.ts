/** The entry of a store key. */
export interface ValueEntry {
  /** The version of the last change of the entry. Only an entry with a greater stamp replaces it. */
  readonly stamp: number
  /** The version of the value; 0 if it was deleted. */
  readonly version: number
  /** IDs of changes, and until when they are kept, in milliseconds since 1970. */
  readonly ids: readonly (readonly [id: string, until: number])[]
  /** JSON; undefined if deleted. A deleted entry stays for a while, so that no late change restores the value. */
  readonly value: string | undefined
}

/** No JSON string contains this text, so its first occurrence is the one of the entry itself. */
const VALUE = ',"value":'
/** Each entry begins with this. */
const STAMP = '{"stamp":'

/** Encodes an entry as a JSON object, so that programs in other languages can read it. */
export function encodeEntry({ stamp, version, ids, value }: ValueEntry): string {
  const about = `${STAMP}${stamp},"version":${version},"ids":${JSON.stringify(ids)}}`
  return value === undefined ? about : `${about.slice(0, -1)}${VALUE}${value}}`
}

/** Returns the stamp of an entry that {@link encodeEntry} wrote, without parsing the rest. */
export function stampOf(text: string): number {
  return Number(text.slice(STAMP.length, text.indexOf(',')))
}

/** Decodes an entry that {@link encodeEntry} wrote. @throws Error for any other text */
export function decodeEntry(text: string): ValueEntry {
  const at = text.indexOf(VALUE)
  const about = JSON.parse(at < 0 ? text : `${text.slice(0, at)}}`) as Omit<ValueEntry, 'value'>
  const { stamp, version, ids } = about
  if (!text.startsWith(STAMP) || !Number.isSafeInteger(stamp) || !Number.isSafeInteger(version))
    throw new TypeError('its stamp or version is missing')
  if (!Array.isArray(ids)) throw new TypeError('its ids are missing')
  return { ...about, value: at < 0 ? undefined : text.slice(at + VALUE.length, -1) }
}
