/** A train that is under way or waits somewhere. One that was deleted is not there at all. */
export interface Train {
  readonly id: string
  /** The id of the location where it stands. */
  readonly location: string
}

/** The store key of a train; a location of the same name has another. */
export function trainKey(id: string): string {
  return `TRA_${id}`
}
