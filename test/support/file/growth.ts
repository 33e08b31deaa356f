import { statSync } from 'node:fs'
import { join } from 'node:path'
import { memoryInUse } from '../heap.js'
import type { Place } from './places.js'

/** The size of a place. */
export interface Size {
  /** Numbers of rows of the tables. */
  readonly queues: number
  readonly requests: number
  readonly ids: number
  /** Bytes of the database and of its log. */
  readonly database: number
  readonly log: number
  /** Megabytes that this process uses. */
  readonly memory: number
}

/** Collects garbage, and measures a place. */
export async function sizeOf(place: Place): Promise<Size> {
  const { heapUsed } = await memoryInUse()
  const connection = await place.connection()
  const rows = (table: string): number =>
    connection.prepare(`select count(*) as rows from ${table}`).get()![0] as number
  const bytes = (file: string): number => statSync(join(place.folder, file)).size
  return {
    queues: rows('queues'),
    requests: rows('requests'),
    ids: rows('ids'),
    database: bytes('signalbox.db'),
    log: bytes('signalbox.db-wal'),
    memory: heapUsed / 2 ** 20,
  }
}
