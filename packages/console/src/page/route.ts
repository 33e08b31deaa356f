/** A view of the page: the address after the `#`, which users can send to colleagues. */
export type Route =
  | { readonly view: 'locks'; readonly search: string }
  | { readonly view: 'key'; readonly key: string }
  | { readonly view: 'waits' }
  | { readonly view: 'limits' }
  /** The values of a store whose keys begin with `prefix`, and come after a key. Texts may be empty. */
  | { readonly view: 'values'; readonly store: string; readonly prefix: string; readonly after: string }
  | { readonly view: 'value'; readonly store: string; readonly key: string }
  | { readonly view: 'sessions' }
  | { readonly view: 'session'; readonly session: string }
  | { readonly view: 'doctor' }

/** Parses the part of an address after the `#`. */
export function routeOf(hash: string): Route {
  const [view, first = '', second = '', third = ''] = hash.replace(/^#\/?/, '').split('/').map(decoded)
  switch (view) {
    case 'key':
      return { view, key: first }
    case 'waits':
    case 'limits':
    case 'sessions':
    case 'doctor':
      return { view }
    case 'values':
      return { view, store: first, prefix: second, after: third }
    case 'value':
      return { view, store: first, key: second }
    case 'session':
      return { view, session: first }
    default:
      return { view: 'locks', search: first }
  }
}

/** Renders the address of a route. */
export function hashOf(route: Route): string {
  const parts = ((): readonly string[] => {
    switch (route.view) {
      case 'locks':
        return [route.search]
      case 'key':
        return [route.key]
      case 'values':
        return [route.store, route.prefix, route.after]
      case 'value':
        return [route.store, route.key]
      case 'session':
        return [route.session]
      default:
        return []
    }
  })()
  return `#/${[route.view, ...parts].map(encodeURIComponent).join('/').replace(/\/+$/, '')}`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
