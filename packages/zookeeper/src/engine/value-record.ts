/** The data in the node of a store key. */
export interface ValueRecord {
  /** JSON; undefined if deleted. The node of a deleted key stays for a while, so that no version occurs twice. */
  readonly value: string | undefined
  /** IDs of changes, each with the end of its retention, by the servers' clock, in milliseconds since 1970. */
  readonly ids: readonly (readonly [id: string, until: number])[]
  /** Identifies the commit that wrote it last, which looks for it if its reply was lost. */
  readonly stamp: string
  /** The version of the value, if it is older than the node's last change. */
  readonly version: number | undefined
}

/** A record that is being written. Only the server knows the time of the write. */
export interface NewRecord extends ValueRecord {
  /** IDs of this change, each with its retention after the write, in milliseconds. */
  readonly fresh: readonly (readonly [id: string, duration: number])[]
}

const NEWLINE = 0x0a

/** Encodes a record: one line of JSON, then the value as it is, so that programs in other languages can read it. */
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
 * Decodes the result of {@link encodeRecord}.
 * @param mtime time of the server's write. @throws Error for other data
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

/** Returns a record as it is once the server has written it. */
export function writtenAt({ fresh, ids, ...record }: NewRecord, mtime: number): ValueRecord {
  return { ...record, ids: [...ids, ...fresh.map(([id, duration]) => [id, mtime + duration] as const)] }
}
