/** `host:port` of a server. */
export function nodeName(host: string, port: number): string {
  return `${host}:${port}`
}

/** Returns the host and port of a server by its name. */
export function placeOf(name: string): { readonly host: string; readonly port: number } {
  const colon = name.lastIndexOf(':')
  return { host: name.slice(0, colon), port: Number(name.slice(colon + 1)) }
}
