import "./fonts.css";
import "./colours.css";
import "./style.css";
import "./controls.css";
import "./panes.css";
import "./pages.css";
import { render } from "preact";
import { App } from "./app";
import { goOn } from "./player";
import { minimise } from "./solutions";
import { poll, registered } from "./state";
import { takeLink } from "./tabs";

takeLink();
addEventListener("hashchange", takeLink);
render(<App />, document.getElementById("console")!);
poll();
minimise(() => registered.value);
void goOn();
