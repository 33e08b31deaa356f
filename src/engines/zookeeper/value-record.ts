/** What the node of a store key has in it. */
export interface ValueRecord {
  /** JSON text; undefined once it was deleted: the node stays for a while, so that no version comes twice. */
  readonly value: string | undefined
  /** Ids of changes, and until when they are kept by the servers' clock: milliseconds since 1970. */
  readonly ids: readonly (readonly [id: string, until: number])[]
  /** Of the commit that wrote it last: how that commit finds itself when its answer was lost. */
  readonly stamp: string
  /** The version of the value, where that is older than the node's last change. */
  readonly version: number | undefined
}

/** A record that is being written: only the server knows when. */
export interface NewRecord extends ValueRecord {
  /** Ids of this change, and for how long they are kept from then on: milliseconds. */
  readonly fresh: readonly (readonly [id: string, duration: number])[]
}

const NEWLINE = 0x0a

/** One line of JSON about the value, then the value as it is, for readers in other languages. */
export function encodeRecord({ value, ids, fresh, stamp, version }: NewRecord): Buffer {
  const about = {
    stamp,
    ids: ids.length === 0 ? undefined : ids,
    fresh: fresh.length === 0 ? undefined : fresh,
    version,
    deleted: value === undefined || undefined,
  }
  return Buffer.from(`${JSON.stringify(about)}\n${value ?? ''}`)
}

/**
 * What {@link encodeRecord} made.
 * @param mtime when the server wrote it. @throws Error when it was not that
 */
export function decodeRecord(data: Buffer, mtime: number): ValueRecord {
  const end = data.indexOf(NEWLINE)
  const about = JSON.parse(data.toString('utf8', 0, Math.max(end, 0))) as {
    stamp: string
    ids?: ValueRecord['ids']
    fresh?: NewRecord['fresh']
    version?: number
    deleted?: boolean
  }
  const { stamp, ids = [], fresh = [], version, deleted = false } = about
  if (typeof stamp !== 'string' || !Array.isArray(ids) || !Array.isArray(fresh))
    throw new TypeError('its stamp is missing')
  const value = deleted ? undefined : data.toString('utf8', end + 1)
  return writtenAt({ value, ids, fresh, stamp, version }, mtime)
}

/** A record as it is once the server has written it. */
export function writtenAt({ fresh, ids, ...record }: NewRecord, mtime: number): ValueRecord {
  return { ...record, ids: [...ids, ...fresh.map(([id, duration]) => [id, mtime + duration] as const)] }
}
