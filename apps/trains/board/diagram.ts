/** A point of the diagram: `x` from 0 to 1, `y` from 0 to the diagram's height in the same unit. */
export interface Point {
  readonly x: number
  readonly y: number
}

/** Two stations, by their index. */
export type Track = readonly [one: number, other: number]

export interface Station extends Point {
  readonly name: string
}

export interface Diagram {
  readonly stations: readonly Station[]
  readonly tracks: readonly Track[]
  /** Number of stations that are not drawn, because there are too many. */
  readonly left: number
}
