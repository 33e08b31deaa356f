/** The order in which the server named sequential nodes that are called `…-`; the numbers run in a circle. */
export function bySequence(one: string, other: string): number {
  return (numberOf(one) - numberOf(other)) | 0
}

function numberOf(name: string): number {
  return Number(/-(-?\d{10})$/.exec(name)?.[1] ?? 0)
}
