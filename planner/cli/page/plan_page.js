// Chooses among numbers that are in the page already; computes none. Without it the tables say the same.
(function () {
  'use strict';
  var root = document.documentElement;
  root.classList.add('js');
  root.dataset.errors = '0';
  window.addEventListener('error', function (event) {
    root.dataset.errors = String(Number(root.dataset.errors) + 1);
    root.dataset.error = event.message;
  });

  function all(selector, within) {
    return Array.prototype.slice.call((within || document).querySelectorAll(selector));
  }
  function one(selector) { return document.querySelector(selector); }

  // Titles become a tip that the keyboard reaches too.
  var tip = document.getElementById('tip');
  function showTip(element) {
    var box = element.getBoundingClientRect();
    tip.textContent = element.dataset.tip;
    tip.hidden = false;
    var x = Math.min(box.left + box.width / 2, window.innerWidth) - tip.offsetWidth / 2;
    var above = box.top - tip.offsetHeight - 8;
    tip.style.left = Math.max(8, Math.min(x, window.innerWidth - tip.offsetWidth - 8)) + 'px';
    tip.style.top = (above > 4 ? above : box.bottom + 8) + 'px';
  }
  function hideTip() { tip.hidden = true; }
  function setUpTips() {
    all('[title]', one('main')).forEach(function (element) {
      element.dataset.tip = element.title;
      element.removeAttribute('title');
      element.addEventListener('pointerenter', function () { showTip(element); });
      element.addEventListener('pointerleave', hideTip);
    });
    // Going to a layer may scroll to it: its tip goes along.
    window.addEventListener('scroll', function () {
      var focused = document.activeElement;
      if (!tip.hidden && focused && focused.dataset.tip) showTip(focused); else hideTip();
    }, {passive: true});
    document.addEventListener('keydown', function (event) { if (event.key === 'Escape') hideTip(); });
  }

  // A block is one stop of the Tab key; arrows walk through its layers.
  function setUpBlock(block) {
    var layers = all('li', block);
    if (layers.length === 0) return;
    block.setAttribute('role', 'listbox');
    block.setAttribute('aria-orientation', 'horizontal');
    layers.forEach(function (layer, index) {
      layer.setAttribute('role', 'option');
      layer.setAttribute('aria-label', layer.dataset.tip);
      layer.setAttribute('aria-selected', 'false');
      layer.tabIndex = index === 0 ? 0 : -1;
      layer.addEventListener('focus', function () {
        layers.forEach(function (other) {
          other.tabIndex = other === layer ? 0 : -1;
          other.setAttribute('aria-selected', String(other === layer));
        });
        showTip(layer);
      });
      layer.addEventListener('blur', hideTip);
    });
    block.addEventListener('keydown', function (event) {
      var at = layers.indexOf(document.activeElement);
      var to = {ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0,
                End: layers.length - 1, PageDown: at + 10, PageUp: at - 10}[event.key];
      if (at < 0 || to === undefined) return;
      event.preventDefault();
      layers[Math.max(0, Math.min(to, layers.length - 1))].focus();
    });
  }

  // Tables that are wider than the screen can be scrolled with the keyboard.
  function setUpScrolling() {
    function mark() {
      all('.scroll').forEach(function (box) {
        if (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1) {
          box.tabIndex = 0;
          box.setAttribute('role', 'region');
          box.setAttribute('aria-label', 'Table, scrolls');
        } else {
          ['tabindex', 'role', 'aria-label'].forEach(function (name) { box.removeAttribute(name); });
        }
      });
    }
    window.addEventListener('resize', mark);
    document.addEventListener('toggle', mark, true);
    mark();
  }

  function setUpSlider(stops) {
    var slider = document.getElementById('stop');
    if (!slider || !stops) return;
    var rows = all('.stops tbody tr');
    var segments = all('[data-stack] i');
    function show() {
      var stop = stops[Number(slider.value)];
      var shown = stop.shown;
      one('[data-context]').textContent = shown.context;
      one('[data-bytes]').textContent = shown.bytes;
      one('[data-count]').textContent = shown.requests[0].text;
      one('[data-guaranteed]').textContent = shown.guaranteed;
      shown.pools.forEach(function (pool, index) {
        one('[data-pool="' + index + '"]').textContent = pool.text;
        segments[index].style.width = pool.width;
      });
      shown.requests.forEach(function (row, index) {
        one('[data-requests="' + index + '"]').textContent = row.text;
        one('[data-bar="' + index + '"]').style.width = row.width;
      });
      rows.forEach(function (row, index) { row.classList.toggle('now', index === Number(slider.value)); });
      slider.setAttribute('aria-valuetext', shown.context + ' tokens: ' + shown.requests[0].text + ' requests, ' +
                          shown.bytes + ' each');
    }
    // plan.html#context=32768 opens at that length.
    function follow() {
      var asked = /^#context=(\d+)$/.exec(location.hash);
      stops.forEach(function (stop, index) {
        if (asked && String(stop.context_tokens) === asked[1]) slider.value = String(index);
      });
      show();
    }
    slider.addEventListener('input', show);
    slider.addEventListener('change', function () {
      history.replaceState(null, '', '#context=' + stops[Number(slider.value)].context_tokens);
    });
    window.addEventListener('hashchange', follow);
    follow();
  }

  // Paper shows everything that was open or closed.
  function setUpPrint() {
    var closed = [];
    window.addEventListener('beforeprint', function () {
      closed = all('details.kind:not([open])');
      closed.forEach(function (details) { details.open = true; });
    });
    window.addEventListener('afterprint', function () {
      closed.forEach(function (details) { details.open = false; });
    });
  }

  var data = JSON.parse(document.getElementById('data').textContent);
  setUpTips();
  all('[data-block]').forEach(setUpBlock);
  setUpScrolling();
  setUpSlider(data.stops);
  setUpPrint();
  root.dataset.ready = 'yes';
}());
