/** How long a watcher is told of changes without being heard of: milliseconds. */
export const WATCH_LIFE = 60_000

/** What a row has of a value. */
export interface StoredValue {
  /** JSON text; undefined for an absent key. */
  value: string | undefined
  version: number
  /** Until when each session that watches it is told of changes: server time, by session. */
  readonly watchers: Map<string, number>
}

/** Reads the data of a row: a line with the version and the watchers, then the value. */
export function valueOf(data: string): StoredValue {
  if (data === '') return { value: undefined, version: 0, watchers: new Map() }
  const end = data.indexOf('\n')
  const value = data.slice(end + 1)
  const [version, ...watchers] = JSON.parse(data.slice(0, end)) as [number, ...[string, number][]]
  return { value: value === '' ? undefined : value, version, watchers: new Map(watchers) }
}

/** The data of a row; empty when there is nothing to keep. @param now server time. */
export function valueData({ value, version, watchers }: StoredValue, now: number): string {
  const live = [...watchers].filter(([, until]) => until > now)
  if (value === undefined && live.length === 0) return ''
  return `${JSON.stringify([version, ...live])}\n${value ?? ''}`
}
