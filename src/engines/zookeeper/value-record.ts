/** What the node of a store key has in it. */
export interface ValueRecord {
  /** JSON text; undefined once it was deleted: the node stays for a while, so that no version comes twice. */
  readonly value: string | undefined
  /** Ids of changes, and until when they are kept: milliseconds since 1970. */
  readonly ids: readonly (readonly [id: string, until: number])[]
  /** Of the commit that wrote it last: how that commit finds itself when its answer was lost. */
  readonly stamp: string
  /** The version of the value, where that is older than the node's last change. */
  readonly version: number | undefined
}

const NEWLINE = 0x0a

/** One line of JSON about the value, then the value as it is, for readers in other languages. */
export function encodeRecord({ value, ids, stamp, version }: ValueRecord): Buffer {
  const about = {
    stamp,
    ids: ids.length === 0 ? undefined : ids,
    version,
    deleted: value === undefined || undefined,
  }
  return Buffer.from(`${JSON.stringify(about)}\n${value ?? ''}`)
}

/** What {@link encodeRecord} made. @throws Error when it was not that */
export function decodeRecord(data: Buffer): ValueRecord {
  const end = data.indexOf(NEWLINE)
  const about = JSON.parse(data.toString('utf8', 0, Math.max(end, 0))) as {
    stamp: string
    ids?: ValueRecord['ids']
    version?: number
    deleted?: boolean
  }
  const { stamp, ids = [], version, deleted = false } = about
  if (typeof stamp !== 'string' || !Array.isArray(ids)) throw new TypeError('it lacks a stamp')
  return { value: deleted ? undefined : data.toString('utf8', end + 1), ids, stamp, version }
}
