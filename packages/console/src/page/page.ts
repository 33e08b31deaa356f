import { showApp } from './app.js'

showApp(document.getElementById('page')!)
