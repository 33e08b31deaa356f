/** What the entry of a store key has in it. */
export interface ValueEntry {
  /** The version of the last change of the entry: only an entry with a greater one takes its place. */
  readonly stamp: number
  /** The version of the value; 0 once it was deleted. */
  readonly version: number
  /** Ids of changes, and until when they are kept: milliseconds since 1970. */
  readonly ids: readonly (readonly [id: string, until: number])[]
  /** JSON text; undefined once it was deleted: the entry stays for a while, so that no late change brings it back. */
  readonly value: string | undefined
}

/** No text within JSON has this in it, so the first one there is belongs to the entry itself. */
const VALUE = ',"value":'
/** What an entry begins with. */
const STAMP = '{"stamp":'

/** An object of JSON, for readers in other languages. */
export function encodeEntry({ stamp, version, ids, value }: ValueEntry): string {
  const about = `${STAMP}${stamp},"version":${version},"ids":${JSON.stringify(ids)}}`
  return value === undefined ? about : `${about.slice(0, -1)}${VALUE}${value}}`
}

/** The stamp of what {@link encodeEntry} made, which is all that is wanted most of the time. */
export function stampOf(text: string): number {
  return Number(text.slice(STAMP.length, text.indexOf(',')))
}

/** What {@link encodeEntry} made. @throws Error when it was not that */
export function decodeEntry(text: string): ValueEntry {
  const at = text.indexOf(VALUE)
  const about = JSON.parse(at < 0 ? text : `${text.slice(0, at)}}`) as Omit<ValueEntry, 'value'>
  const { stamp, version, ids } = about
  if (!text.startsWith(STAMP) || !Number.isSafeInteger(stamp) || !Number.isSafeInteger(version))
    throw new TypeError('it lacks a stamp or a version')
  if (!Array.isArray(ids)) throw new TypeError('it lacks ids')
  return { ...about, value: at < 0 ? undefined : text.slice(at + VALUE.length, -1) }
}
