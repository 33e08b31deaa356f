/** A promise that was not kept. */
export interface Finding {
  readonly promise: 'P1' | 'P2' | 'P3' | 'P4' | 'P9' | 'P10' | 'P13'
  readonly message: string
}
