/** A train that was created and not deleted. */
export interface Train {
  readonly id: string
  /** The ID of its location. */
  readonly location: string
}

const PREFIX = 'TRA_'

/** Returns the store key of a train, which differs from that of a location with the same name. */
export function trainKey(id: string): string {
  return `${PREFIX}${id}`
}

export function trainOf(key: string): string {
  return key.slice(PREFIX.length)
}
